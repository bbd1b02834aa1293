// Package cleanup removes from members the data that they no longer own. It imports core packages
// and procedure.
package cleanup
