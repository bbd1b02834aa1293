// Package jre cuts a Java runtime out of the OpenJDK packages of Debian with
// jlink. It may import layer.
package jre
