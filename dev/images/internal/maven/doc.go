// Package maven resolves and downloads jar files with the mvn command. It may
// import lock and cache.
package maven
