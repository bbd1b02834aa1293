// Command kubectl-helenus is the kubectl plugin: in the PATH under this name it is called as
// "kubectl helenus". It wires internal/cli to the terminal and holds no logic of its own.
package main
