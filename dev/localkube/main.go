// Command localkube runs a real Kubernetes on one Linux machine, without Docker
// and without downloads other than Go modules and Debian packages.
package main

import (
	"os"

	"helenus.io/helenus/dev/localkube/cmd"
)

func main() { os.Exit(cmd.Main()) }
