package disk

import (
	"os"
	"path"
	"strings"
)

// uploadFile begins the names of files that have lines about an upload each.
const uploadFile = "upload-"

// Uploads are lines about uploads that have not ended, by names of these, on the volume at a
// directory. They are a cache: what of it cannot be read or written is sent again.
type Uploads string

// Names are those of all uploads of which there are lines.
func (u Uploads) Names() []string {
	var out []string
	u.in(func(root *os.Root) {
		entries, _ := readDir(root.FS(), ownDir)
		for _, e := range entries {
			if name, is := strings.CutPrefix(e.Name(), uploadFile); is {
				out = append(out, name)
			}
		}
	})
	return out
}

// Lines of an upload. The last one may have lost its end.
func (u Uploads) Lines(name string) []string {
	var out []string
	u.in(func(root *os.Root) {
		text, _ := root.ReadFile(path.Join(ownDir, uploadFile+name))
		out = strings.Split(strings.TrimSpace(string(text)), "\n")
	})
	if len(out) == 1 && out[0] == "" {
		return nil
	}
	return out
}

// Add a line. It is there when the process ends; a host that fails may lose it.
func (u Uploads) Add(name, line string) {
	u.in(func(root *os.Root) {
		file, err := root.OpenFile(path.Join(ownDir, uploadFile+name), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return
		}
		_, _ = file.WriteString(line + "\n")
		_ = file.Close()
	})
}

// Clear removes the lines of an upload.
func (u Uploads) Clear(name string) {
	u.in(func(root *os.Root) { _ = root.Remove(path.Join(ownDir, uploadFile+name)) })
}

func (u Uploads) in(do func(root *os.Root)) {
	root, err := os.OpenRoot(string(u))
	if err != nil {
		return
	}
	defer root.Close() //nolint:errcheck // nothing of it must last
	do(root)
}
