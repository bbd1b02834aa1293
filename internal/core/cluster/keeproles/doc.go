// Package keeproles gives the roles of applications the passwords and permissions that the spec
// says. It imports core packages and procedure.
package keeproles
