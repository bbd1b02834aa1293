package cli

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"helenus.io/helenus/dev/images/internal/lock"
	"helenus.io/helenus/dev/images/internal/maven"
	"helenus.io/helenus/dev/images/internal/own"
	"helenus.io/helenus/dev/images/internal/release"
)

var versionPattern = regexp.MustCompile(`^v[0-9]+[.][0-9]+[.][0-9]+(-[0-9A-Za-z.-]+)?$`)

func (a *app) release() *cobra.Command {
	r, created := release.Release{Plugin: "./cmd/kubectl-helenus", Systems: []string{"darwin", "linux", "windows"},
		Images: map[string]own.Image{}}, ""
	command := &cobra.Command{
		Use:   "release VERSION",
		Short: "Write what is published of a version",
		Long: `Writes the project's images for amd64 and arm64 as OCI layouts, what is in them (SPDX),
the chart with their digests, and the kubectl plugin for Linux, macOS and Windows with
the manifest for krew. The same source and compiler give the same bytes.`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, arguments []string) error {
			if r.Version = arguments[0]; !versionPattern.MatchString(r.Version) {
				return fmt.Errorf("version %q: want one such as v0.1.0 or v0.1.0-rc.1", r.Version)
			}
			var err error
			if r.Created, err = time.Parse(time.RFC3339, created); err != nil {
				return fmt.Errorf("read --created: %w", err)
			}
			return a.writeRelease(command.Context(), &r)
		},
	}
	command.Flags().StringVar(&r.Repository, "repo", "../..", "checkout of the version")
	command.Flags().StringVar(&r.Out, "out", "", "directory for the files, which must not exist")
	command.Flags().StringVar(&r.URL, "url", "", "where the files will be")
	command.Flags().StringVar(&created, "created", "", "time of the commit")
	for _, flag := range []string{"out", "url", "created"} {
		_ = command.MarkFlagRequired(flag) // it is one of them
	}
	return command
}

func (a *app) writeRelease(ctx context.Context, r *release.Release) error {
	if err := own.CheckRepository(r.Repository); err != nil {
		return err
	}
	for inChart, name := range map[string]string{"operator": "helenus", "agent": "helenus-agent"} {
		r.Images[inChart], _ = own.Find(name)
	}
	c, err := a.cache()
	if err != nil {
		return err
	}
	mvn, err := maven.New(c)
	if err != nil {
		return err
	}
	r.Jar = func(ctx context.Context, artifact lock.Artifact) (string, error) {
		return c.Download(artifact.SHA256), mvn.Fetch(ctx, []lock.Artifact{artifact})
	}
	r.Lock = func(image string) (*lock.File, error) { return a.readLock(image, own.AnyArchitecture) }
	if r.Work, err = c.WorkDir("release"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(r.Work) }()
	if err := os.Mkdir(r.Out, 0o755); err != nil {
		return fmt.Errorf("make the directory of the release: %w", err)
	}
	return r.Write(ctx)
}
