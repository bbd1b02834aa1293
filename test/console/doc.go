// Package console tests the page of the operator in a real Chromium: what it says, as its
// accessibility tree, against golden files; by keyboard; on a narrow screen, dark and light; with
// texts that would be markup; by the rules of axe-core. It has tests alone, which serve the
// endpoint of internal/inspect.
package console
