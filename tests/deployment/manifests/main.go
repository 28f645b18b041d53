// Reads Kubernetes manifests into Kubernetes' own types, strictly: an unknown kind, an unknown or a doubled field and
// a value of the wrong type are errors. Prints a line per object; the status says whether all are right.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
)

func main() {
	strict := json.NewSerializerWithOptions(
		json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, json.SerializerOptions{Yaml: true, Strict: true},
	)
	reader := yaml.NewYAMLReader(bufio.NewReader(os.Stdin))
	status := 0
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			object, kind, problem := strict.Decode(document, nil, nil)
			if err = problem; err == nil {
				fmt.Printf("ok %s %T\n", kind.Kind, object)
				continue
			}
		}
		fmt.Printf("FAILED %v\n", err)
		status = 1
	}
	os.Exit(status)
}
