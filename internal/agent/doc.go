// Package agent puts an agent together: from the environment of its pod to a running loop with its
// servers. It imports the packages below it and nothing of the operator's.
package agent
