package scene

import (
	"bufio"
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Line is a line of a container's log, with the time at which the container runtime got it.
type Line struct {
	At   time.Time
	Text string
}

// Log is what a container has said since it was followed. It can be read to the end, which comes with the end of the container or of the context.
type Log struct {
	lines chan []Line
}

// FollowLog follows the log of a container from now on.
func (s *Scene) FollowLog(ctx context.Context, pod, container string) (*Log, error) {
	nothing := int64(0)
	stream, err := s.Kubernetes.Core.CoreV1().Pods(s.Namespace).GetLogs(pod, &corev1.PodLogOptions{
		Container: container, Follow: true, Timestamps: true, TailLines: &nothing,
	}).Stream(ctx)
	if err != nil {
		return nil, fmt.Errorf("follow the log of container %s of pod %s: %w", container, pod, err)
	}
	l := &Log{lines: make(chan []Line, 1)}
	go func() {
		defer stream.Close() //nolint:errcheck // it was only read
		var lines []Line
		scanner := bufio.NewScanner(stream)
		scanner.Buffer(nil, 1<<20)
		for scanner.Scan() {
			stamp, text, _ := strings.Cut(scanner.Text(), " ")
			if at, err := time.Parse(time.RFC3339Nano, stamp); err == nil {
				lines = append(lines, Line{At: at, Text: text})
			}
		}
		l.lines <- lines
	}()
	return l, nil
}

// Said is a log that has ended.
func Said(lines []Line) *Log {
	l := &Log{lines: make(chan []Line, 1)}
	l.lines <- lines
	return l
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
