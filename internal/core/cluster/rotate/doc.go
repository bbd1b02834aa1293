// Package rotate gives the superuser the password that its Secret has now. It imports core packages
// and procedure.
package rotate
