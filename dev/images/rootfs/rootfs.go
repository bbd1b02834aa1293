package rootfs

import "embed"

// Files holds the directories common, one per release line, and one per
// version that differs from its line.
//
//go:embed all:common all:4.1 all:5.0 all:5.0.9
var Files embed.FS
