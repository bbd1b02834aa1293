// Package config holds the manifest of an installation, for programs that compare with it what is
// installed. It imports nothing.
package config

import _ "embed" // the manifest

// Install is install.yaml: the chart, rendered for the namespace helenus-system.
//
//go:embed install.yaml
var Install []byte
