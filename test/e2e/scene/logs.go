package scene

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Line is a line of a container's log, with the time at which the container runtime got it.
type Line struct {
	At   time.Time
	Text string
}

// ReadLog reads what the present containers of a name have said in a pod since a time.
func (s *Scene) ReadLog(ctx context.Context, pod, container string, since time.Time) ([]Line, error) {
	stream, err := s.log(ctx, pod, container, &corev1.PodLogOptions{SinceTime: &metav1.Time{Time: since}})
	if err != nil {
		return nil, fmt.Errorf("read the log of container %s of pod %s: %w", container, pod, err)
	}
	lines := readLines(stream)
	// the server goes by whole seconds
	return slices.DeleteFunc(lines, func(l Line) bool { return l.At.Before(since) }), nil
}

// Says waits until the present containers of a name have said some words in a pod since a time.
func (s *Scene) Says(ctx context.Context, pod, container string, since time.Time, words string) error {
	return s.poll(ctx, comeback, fmt.Sprintf("container %s of pod %s says %q", container, pod, words),
		func(ctx context.Context) error {
			lines, err := s.ReadLog(ctx, pod, container, since)
			if err == nil && !slices.ContainsFunc(lines, func(l Line) bool { return strings.Contains(l.Text, words) }) {
				err = fmt.Errorf("it does not, in %d lines", len(lines))
			}
			return err
		})
}

// Log is what a container has said since it was followed. It can be read to the end, which comes
// with the end of the container or of the context.
type Log struct {
	lines chan []Line
}

// FollowLog follows the log of a container from now on.
func (s *Scene) FollowLog(ctx context.Context, pod, container string) (*Log, error) {
	nothing := int64(0)
	stream, err := s.log(ctx, pod, container, &corev1.PodLogOptions{Follow: true, TailLines: &nothing})
	if err != nil {
		return nil, fmt.Errorf("follow the log of container %s of pod %s: %w", container, pod, err)
	}
	l := &Log{lines: make(chan []Line, 1)}
	go func() { l.lines <- readLines(stream) }()
	return l, nil
}

// Lines waits for the end of the log.
func (l *Log) Lines(ctx context.Context) ([]Line, error) {
	select {
	case lines := <-l.lines:
		return lines, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *Scene) log(ctx context.Context, pod, container string, o *corev1.PodLogOptions) (io.ReadCloser, error) {
	o.Container, o.Timestamps = container, true
	return s.Kubernetes.Core.CoreV1().Pods(s.Namespace).GetLogs(pod, o).Stream(ctx)
}

// readLines reads a log with timestamps to its end, and closes it.
func readLines(log io.ReadCloser) []Line {
	defer log.Close() //nolint:errcheck // it was only read
	var lines []Line
	scanner := bufio.NewScanner(log)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		stamp, text, _ := strings.Cut(scanner.Text(), " ")
		if at, err := time.Parse(time.RFC3339Nano, stamp); err == nil {
			lines = append(lines, Line{At: at, Text: text})
		}
	}
	return lines
}
