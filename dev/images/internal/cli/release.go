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
	key := ""
	command := &cobra.Command{
		Use:   "release VERSION",
		Short: "Write what is published of a version",
		Long: `Writes the project's images for amd64 and arm64 as OCI layouts, what is in them (SPDX),
the chart with their digests, and the kubectl plugin for Linux, macOS and Windows with
the manifest for krew. The same source and compiler give the same bytes.

With --key also the signatures of the images, as cosign puts them into a registry; the
password of the key is in COSIGN_PASSWORD.`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, arguments []string) error {
			if r.Version = arguments[0]; !versionPattern.MatchString(r.Version) {
				return fmt.Errorf("version %q: want one such as v0.1.0 or v0.1.0-rc.1", r.Version)
			}
			var err error
			if r.Created, err = time.Parse(time.RFC3339, created); err != nil {
				return fmt.Errorf("read --created: %w", err)
			}
			if key != "" {
				if r.Key, err = release.ReadKey(key, os.Getenv(passwordVariable)); err != nil {
					return err
				}
			}
			return a.writeRelease(command.Context(), &r)
		},
	}
	command.Flags().StringVar(&r.Repository, "repo", "../..", "checkout of the version")
	command.Flags().StringVar(&r.Out, "out", "", "directory for the files, which must not exist")
	command.Flags().StringVar(&r.URL, "url", "", "where the files will be")
	command.Flags().StringVar(&key, "key", "", "private key `file` that signs the images")
	command.Flags().StringVar(&created, "created", "", "time of the commit")
	for _, flag := range []string{"out", "url", "created"} {
		_ = command.MarkFlagRequired(flag) // it is one of them
	}
	return command
}

// passwordVariable has the password of the key, as for cosign.
const passwordVariable = "COSIGN_PASSWORD"

func (a *app) sign() *cobra.Command {
	key := ""
	command := &cobra.Command{
		Use:   "sign FILE",
		Short: "Sign a file as cosign does",
		Long: `Writes the signature of a file into FILE.sig, by a key of cosign whose password is in
COSIGN_PASSWORD. It is what cosign sign-blob writes:

  cosign verify-blob --key cosign.pub --signature FILE.sig --insecure-ignore-tlog FILE`,
		Example: "  COSIGN_PASSWORD=… images sign SHA256SUMS --key cosign.key",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, arguments []string) error {
			k, err := release.ReadKey(key, os.Getenv(passwordVariable))
			if err != nil {
				return err
			}
			return k.SignFile(arguments[0])
		},
	}
	command.Flags().StringVar(&key, "key", "", "private key `file`")
	_ = command.MarkFlagRequired("key") // it is one of them
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
