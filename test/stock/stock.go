package stock

import (
	"embed"
	"fmt"
	"path"
)

//go:embed 4.1 5.0
var directories embed.FS

// Files are those of a line of releases, 4.1 or 5.0, by name. They are a copy.
func Files(line string) (map[string][]byte, error) {
	entries, err := directories.ReadDir(line)
	if err != nil {
		return nil, fmt.Errorf("read configuration of line %s: %w", line, err)
	}
	files := make(map[string][]byte, len(entries))
	for _, entry := range entries {
		text, err := directories.ReadFile(path.Join(line, entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("read configuration of line %s: %w", line, err)
		}
		files[entry.Name()] = text
	}
	return files, nil
}
