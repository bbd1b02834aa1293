package install

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	appsv1 "k8s.io/api/apps/v1"
)

// Where the operator runs, as the manifest has it.
const (
	Namespace  = "helenus-system"
	Deployment = "helenus"
)

// Images are what is to run.
type Images struct {
	// Operator and Agent are references; empty leaves what the manifest says.
	Operator string
	Agent    string
	// CassandraRepository is where Cassandra images come from, without tag; empty leaves what the
	// operator takes by itself.
	CassandraRepository string
}

// Manifest reads the objects of a manifest, in their order, with the images put in.
func Manifest(file string, images Images) ([]*unstructured.Unstructured, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	objects, err := decode(text)
	if err != nil {
		return nil, fmt.Errorf("read manifest %s: %w", file, err)
	}
	found := false
	for _, object := range objects {
		if object.GetKind() == "Deployment" && object.GetName() == Deployment {
			found = true
			if err := images.putInto(object); err != nil {
				return nil, fmt.Errorf("read manifest %s: %w", file, err)
			}
		}
	}
	if !found {
		return nil, fmt.Errorf("read manifest %s: it has no Deployment %s", file, Deployment)
	}
	return objects, nil
}

func decode(text []byte) ([]*unstructured.Unstructured, error) {
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 1<<16)
	var objects []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		switch {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, err
		case len(object.Object) > 0:
			objects = append(objects, object)
		}
	}
}

const (
	agentFlag      = "--agent-image="
	repositoryFlag = "--image-repository="
)

// putInto puts the images into the operator's Deployment.
func (i Images) putInto(object *unstructured.Unstructured) error {
	deployment := &appsv1.Deployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, deployment); err != nil {
		return fmt.Errorf("decode Deployment %s: %w", object.GetName(), err)
	}
	containers := deployment.Spec.Template.Spec.Containers
	if len(containers) != 1 {
		return fmt.Errorf("the Deployment %s has %d containers, want one", object.GetName(), len(containers))
	}
	operator := &containers[0]
	if i.Operator != "" {
		operator.Image = i.Operator
	}
	if i.Agent != "" {
		operator.Args = setFlag(operator.Args, agentFlag, i.Agent)
	}
	if i.CassandraRepository != "" {
		operator.Args = setFlag(operator.Args, repositoryFlag, i.CassandraRepository)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(deployment)
	if err != nil {
		return fmt.Errorf("encode Deployment %s: %w", object.GetName(), err)
	}
	unstructured.RemoveNestedField(content, "status")
	object.Object = content
	return nil
}

// setFlag puts a flag in the place of the one of that name, or at the end.
func setFlag(args []string, flag, value string) []string {
	for i, arg := range args {
		if strings.HasPrefix(arg, flag) {
			args[i] = flag + value
			return args
		}
	}
	return append(args, flag+value)
}
