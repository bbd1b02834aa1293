// Package follow follows the objects of one namespace by watches, and waits for what is to become
// of them: a condition is looked at again at every event, never after a pause. It imports the API
// of Helenus and the clients of Kubernetes.
package follow
