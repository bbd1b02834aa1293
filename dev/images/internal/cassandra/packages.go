package cassandra

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// packages are what the image's scripts and Cassandra need of Debian; apt finds
// the libraries. The list is that of the official image plus what its base has.
var packages = []string{
	"base-files", "libc-bin", "bash", "dash", "coreutils", "sed", "grep", "findutils", "mawk", "hostname",
	"debianutils",
	"util-linux",              // getopt for bin/cassandra, setpriv for the entry point
	"procps",                  // free for cassandra-env.sh, ps
	"iproute2",                // ip for the entry point
	"libjemalloc2", "numactl", // used by bin/cassandra when present
	"python3-minimal", "libpython3-stdlib", // cqlsh
	"ca-certificates",
}

// drop are packages that apt adds for maintainer scripts, which are not run, or
// for programs and modules that keepFile leaves out.
var drop = []string{
	"dpkg", "tar", "debconf", "usrmerge", "init-system-helpers", "openssl", "media-types", "mime-support",
	"perl", "perl-base", "perl-modules-5.36", "perl-modules-5.32", "libperl5.36", "libperl5.32",
	"libfile-find-rule-perl", "libnumber-compare-perl", "libtext-glob-perl",
	"util-linux-extra", "libblkid1", "libmount1", "libsmartcols1", "libudev1", "libpam0g", "libaudit1",
	"libaudit-common",
	"libtirpc3", "libtirpc-common", "libnsl2", "libgssapi-krb5-2", "libkrb5-3", "libkrb5support0", "libk5crypto3",
	"libkeyutils1", "libcom-err2",
	"libdb5.3", "libgdbm6", "libgdbm-compat4", "readline-common", "libxtables12", "libcap2-bin",
	"libpam-modules", "libpam-modules-bin", "libpam-runtime", "login", "passwd", "sensible-utils", "adduser",
	"lsb-base", "sysvinit-utils",
}

// only names the programs kept of packages that hold many.
var only = map[string][]string{
	"util-linux":  {"usr/bin/getopt", "usr/bin/setpriv", "usr/bin/flock"},
	"iproute2":    {"usr/bin/ip", "usr/sbin/ip"},
	"libc-bin":    {"usr/bin/getent", "usr/lib/locale"},
	"numactl":     {"usr/bin/numactl"},
	"debianutils": {"usr/bin/which.debianutils", "usr/bin/tempfile"},
}

// leftOut are trees that nothing in the image reads.
var leftOut = []string{
	"usr/share/man", "usr/share/locale", "usr/share/info", "usr/share/lintian", "usr/share/bash-completion",
	"usr/share/gdb",
	"usr/share/bug", "usr/share/menu", "usr/share/pixmaps", "usr/share/applications", "usr/share/doc-base",
	"usr/share/gcc",
	"etc/init.d", "etc/cron.daily", "etc/apt", "etc/dpkg", "usr/lib/systemd", "usr/lib/init",
	"usr/lib/python3/dist-packages",
	"var/cache", "var/backups", "usr/share/python3/runtime.d",
}

// keepFile decides which files of a package go into the image.
func keepFile(pkg string) func(string) bool {
	return func(name string) bool {
		if strings.HasPrefix(name, "usr/share/doc/") {
			return path.Base(name) == "copyright"
		}
		if programs, ok := only[pkg]; ok {
			return slices.ContainsFunc(programs, func(program string) bool { return below(name, program) })
		}
		if slices.ContainsFunc(leftOut, func(tree string) bool { return below(name, tree) }) {
			return false
		}
		// Character set converters, and Python modules whose libraries are left out.
		for _, part := range []string{"/gconv/", "/lib-dynload/nis.", "/lib-dynload/_dbm.", "/lib-dynload/_gdbm."} {
			if strings.Contains(name, part) {
				return false
			}
		}
		return true
	}
}

func below(name, tree string) bool {
	return name == tree || strings.HasPrefix(name, tree+"/")
}

// javaPackages are the parts of Debian's OpenJDK that jlink needs.
func javaPackages(release int) []string {
	return []string{fmt.Sprintf("openjdk-%d-jdk-headless", release), fmt.Sprintf("openjdk-%d-jre-headless", release)}
}
