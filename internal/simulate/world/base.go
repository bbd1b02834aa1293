package world

import (
	"fmt"
	"maps"
	"strings"

	"helenus.io/helenus/internal/core/config"
	"helenus.io/helenus/test/stock"
)

// lines of releases, read once.
var lines = func() map[string]config.Files {
	out := map[string]config.Files{}
	for _, line := range []string{"4.1", "5.0"} {
		files, err := stock.Files(line)
		if err != nil {
			panic(fmt.Sprintf("stock files of line %s: %v", line, err)) // they are part of the program
		}
		out[line] = files
	}
	return out
}()

// base is the configuration directory of the image of a release.
func base(release string) config.Files {
	for line, files := range lines {
		if strings.HasPrefix(release, line+".") {
			return maps.Clone(files)
		}
	}
	return nil
}
