// Command helenus is the operator: it reads flags, makes a logger and runs internal/operator. It
// holds no logic of its own.
package main
