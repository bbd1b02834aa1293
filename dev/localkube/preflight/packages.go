package preflight

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"helenus.io/helenus/dev/localkube/step"
	"helenus.io/helenus/dev/localkube/versions"
)

// tool is a program that a node needs, and the Debian package it is in.
type tool struct{ path, debian string }

// tools are looked for in PATH, or at any of the absolute paths.
var tools = []tool{
	{"containerd", "containerd"},
	{"runc", "runc"},
	{"/usr/lib/cni/host-local:/opt/cni/bin/host-local", "containernetworking-plugins"},
	{"iptables", "iptables"},
	{"nft", "nftables"},
	{"nsenter", "util-linux"},
	{"mount", "mount"},
	{"busybox", "busybox-static"},
}

func (t tool) present() bool {
	for name := range strings.SplitSeq(t.path, ":") {
		if filepath.IsAbs(name) {
			if _, err := os.Stat(name); err == nil {
				return true
			}
		} else if _, err := exec.LookPath(name); err == nil {
			return true
		}
	}
	return false
}

func missing() (programs, packages []string) {
	for _, t := range tools {
		if !t.present() {
			programs = append(programs, filepath.Base(t.path))
			packages = append(packages, t.debian)
		}
	}
	return programs, packages
}

// Packages installs what is missing of the programs that nodes need. Where there
// is no apt-get it says what is missing.
func Packages(ctx context.Context, steps *step.Reporter) error {
	programs, packages := missing()
	if len(packages) == 0 {
		return nil
	}
	apt, err := exec.LookPath("apt-get")
	if err != nil {
		return fmt.Errorf("programs that nodes need are missing: %s; install them (on Debian they are in the "+
			"packages %s)", strings.Join(programs, ", "), strings.Join(packages, " "))
	}
	return steps.Run(ctx, "install "+strings.Join(packages, " "), func(ctx context.Context, _ *step.Progress) error {
		install := append([]string{"install", "-y", "--no-install-recommends"}, packages...)
		if err := run(ctx, apt, install...); err != nil {
			// Old package lists name versions that are no longer there.
			if err := run(ctx, apt, "update"); err != nil {
				return err
			}
			if err := run(ctx, apt, install...); err != nil {
				return err
			}
		}
		if programs, _ := missing(); programs != nil {
			return fmt.Errorf("still missing after the installation: %s", strings.Join(programs, ", "))
		}
		return nil
	})
}

func run(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	out, err := cmd.CombinedOutput()
	if err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		return fmt.Errorf("%s %s: %w: %s", filepath.Base(name), args[0], err,
			strings.Join(lines[max(0, len(lines)-5):], "; "))
	}
	return nil
}

// Containerd tells whether the machine's containerd is new enough for the kubelet of a release.
func Containerd(ctx context.Context, k versions.Kubernetes) (bool, error) {
	out, err := exec.CommandContext(ctx, "containerd", "--version").Output()
	if err != nil {
		return false, fmt.Errorf("ask for containerd's version: %w", err)
	}
	return containerdServes(string(out), k)
}

func containerdServes(output string, k versions.Kubernetes) (bool, error) {
	fields := strings.Fields(output)
	var major int
	if len(fields) < 3 {
		return false, fmt.Errorf("read containerd's version: %q", output)
	}
	if _, err := fmt.Sscanf(strings.TrimPrefix(fields[2], "v"), "%d.", &major); err != nil {
		return false, fmt.Errorf("read containerd's version %q: %w", fields[2], err)
	}
	return major >= 2 || k.Minor < versions.Containerd2, nil
}

// ForwardRules are the machine's rules for forwarded packets.
func ForwardRules(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "iptables", "-S", "FORWARD").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("list the firewall's rules: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

// Toolchain requires a Go that can compile Kubernetes.
func Toolchain(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, "go", "version").Output()
	if errors.Is(err, exec.ErrNotFound) {
		return errors.New("the Go toolchain is missing, and Kubernetes is compiled with it: install Go and put it " +
			"into PATH")
	}
	if err != nil {
		return fmt.Errorf("ask for Go's version: %w", err)
	}
	return goVersion(string(out))
}

// oldestGo compiles every Kubernetes release that localkube runs.
const oldestGo = 26

func goVersion(output string) error {
	var major, minor int
	fields := strings.Fields(output)
	if len(fields) < 3 {
		return fmt.Errorf("read Go's version: %q", output)
	}
	if _, err := fmt.Sscanf(fields[2], "go%d.%d", &major, &minor); err != nil {
		// A development version is newer than any release.
		if strings.HasPrefix(fields[2], "devel") {
			return nil
		}
		return fmt.Errorf("read Go's version %q: %w", fields[2], err)
	}
	if major == 1 && minor < oldestGo {
		return fmt.Errorf("go %d.%d is too old to compile Kubernetes: install Go 1.%d or newer", major, minor, oldestGo)
	}
	return nil
}
