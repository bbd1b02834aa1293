package cassandra

// refusal is why a JVM ends by itself.
type refusal struct {
	code int
	// line is what the agent finds of it in the log.
	line string
	// before says that Java refuses, before Cassandra has a log: the line is on its standard error.
	before bool
}

// Exit codes, as CassandraDaemon and StartupException of 4.1 and 5.0 have them.
const (
	exitConfiguration = 1
	exitStartup       = 3
	exitWrongConfig   = 100
	exitDisk          = 100
	exitTerminated    = 143
	exitKilled        = 137
)

const (
	duringStartup = "Exception encountered during startup: "
	exceptions    = "org.apache.cassandra.exceptions."
)

// configuration is a refusal while the files are read: a ConfigurationException, logged by its
// message alone.
func configuration(message string) *refusal {
	return &refusal{code: exitStartup, line: duringStartup + message}
}

// fatalConfiguration is a ConfigurationException after that, while the server is initialised.
func fatalConfiguration(message string) *refusal {
	return &refusal{code: exitConfiguration,
		line: "Fatal configuration error: " + exceptions + "ConfigurationException: " + message}
}

// startup is any other exception during startup.
func startup(class, message string) *refusal {
	return &refusal{code: exitStartup, line: duringStartup + class + ": " + message}
}

// check is a failed startup check, which is logged by its message alone.
func check(code int, message string) *refusal { return &refusal{code: code, line: message} }

const (
	runtimeException     = "java.lang.RuntimeException"
	unsupportedOperation = "java.lang.UnsupportedOperationException"
	illegalState         = "java.lang.IllegalStateException"
	illegalArgument      = "java.lang.IllegalArgumentException"
)
