package chart

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const dir = "../../../charts/helenus"

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// decoded reads YAML or JSON.
func decoded(t *testing.T, text []byte) map[string]any {
	t.Helper()
	out := map[string]any{}
	if err := yaml.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// described are the paths that a schema describes; below a map or a list it goes no further.
func described(schema, definitions map[string]any, path string) []string {
	if of, is := schema["$ref"].(string); is {
		schema = definitions[strings.TrimPrefix(of, "#/definitions/")].(map[string]any)
	}
	properties, is := schema["properties"].(map[string]any)
	if !is {
		return []string{path}
	}
	var out []string
	for name, of := range properties {
		out = append(out, described(of.(map[string]any), definitions, strings.TrimPrefix(path+"."+name, "."))...)
	}
	return out
}

// closed fails unless every object of a schema refuses keys that it does not describe.
func closed(t *testing.T, schema map[string]any, path string) {
	t.Helper()
	if properties, is := schema["properties"].(map[string]any); is {
		if schema["additionalProperties"] != false {
			t.Errorf("%s takes any key", path)
		}
		for name, of := range properties {
			closed(t, of.(map[string]any), path+"."+name)
		}
	}
	if items, is := schema["items"].(map[string]any); is {
		closed(t, items, path+"[]")
	}
}

func value(values map[string]any, path string) (any, bool) {
	var at any = values
	for name := range strings.SplitSeq(path, ".") {
		within, _ := at.(map[string]any) // of what is no map there is nothing
		next, found := within[name]
		if !found {
			return nil, false
		}
		at = next
	}
	return at, true
}

// Every value has its place in values.yaml, in the schema and in the guide.
func TestEveryValueIsDescribed(t *testing.T) {
	values := decoded(t, read(t, filepath.Join(dir, "values.yaml")))
	schema := map[string]any{}
	if err := json.Unmarshal(read(t, filepath.Join(dir, "values.schema.json")), &schema); err != nil {
		t.Fatal(err)
	}
	guide := string(read(t, "../../../docs/guide/installing.md"))
	closed(t, schema, "")
	definitions := schema["definitions"].(map[string]any)
	for _, of := range definitions {
		closed(t, of.(map[string]any), "definitions")
	}
	for _, path := range described(schema, definitions, "") {
		if path == "global" || path == "resources.claims" {
			continue // nobody has these by default
		}
		if _, is := value(values, path); !is {
			t.Errorf("values.yaml lacks %s, which the schema has", path)
		}
		if strings.Count(path, ".") == 2 { // of an image
			path = path[:strings.LastIndex(path, ".")]
		}
		if !strings.Contains(guide, "`"+path+"`") && !strings.Contains(guide, "`"+path+".") {
			t.Errorf("docs/guide/installing.md lacks %s", path)
		}
	}
	if _, err := Render(dir, "helenus-system", values); err != nil {
		t.Errorf("the schema refuses values.yaml: %v", err)
	}
}

func TestValuesThatAreRefused(t *testing.T) {
	for text, named := range map[string]string{
		"replica: 2":                                                       "replica",
		"images: {operator: {image: x}}":                                   "image",
		"images: {operator: {digest: \"sha256:12\"}}":                      "/images/operator/digest",
		"images: {operator: {repository: \"\"}}":                           "/images/operator/repository",
		"images: {pullSecrets: [mine]}":                                    "/images/pullSecrets/0",
		"watch: {namespaces: [\"Shop\"]}":                                  "/watch/namespaces/0",
		"watch: {namespaces: [\"shop\", \"shop\"]}":                        "/watch/namespaces",
		"replicas: -1":                                                     "/replicas",
		"crds: {keep: true}":                                               "keep",
		"resources: {limit: {memory: 1Gi}}":                                "limit",
		"podLabels: {\"app.kubernetes.io/name\": mine}":                    "app.kubernetes.io/name",
		"serviceAccount: {annotations: {a: [b]}}":                          "/serviceAccount/annotations/a",
		"console: {service: {enabled: true}}":                              "/console/service/hosts",
		"console: {service: {enabled: true, hosts: [\"https://a\"]}}":      "/console/service/hosts/0",
		"console: {service: {enabled: true, hosts: [\"a.example:8443\"]}}": "/console/service/hosts/0",
		"console: {service: {host: a.example}}":                            "host",
		"nodeSelector: [ssd]":                                              "/nodeSelector",
	} {
		_, err := Render(dir, "helenus-system", decoded(t, []byte(text)))
		if err == nil || !strings.Contains(err.Error(), named) {
			t.Errorf("%s: %v, want an error that names %s", text, err, named)
		}
	}
}

// objects are those of a manifest, as kind/namespace/name.
func objects(t *testing.T, namespace, values string) map[string]map[string]any {
	t.Helper()
	text, err := Render(dir, namespace, decoded(t, []byte(values)))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string]any{}
	for part := range strings.SplitSeq(text, "---\n") {
		if o := decoded(t, []byte(part)); len(o) > 0 {
			m := o["metadata"].(map[string]any)
			space, _ := m["namespace"].(string)
			out[o["kind"].(string)+"/"+space+"/"+m["name"].(string)] = o
		}
	}
	return out
}

// The console is reached at a port that is open only where it is wanted, under the hosts alone, and
// needs no right more.
func expectConsole(t *testing.T) {
	t.Helper()
	of := func(values string) (all map[string]map[string]any, text string) {
		all = objects(t, "ops", values)
		out, err := json.Marshal([]any{all["Deployment/ops/helenus"], all["NetworkPolicy/ops/helenus"]})
		if err != nil {
			t.Fatal(err)
		}
		return all, string(out)
	}
	without, text := of("{}")
	if strings.Contains(text, "console") || strings.Contains(text, "8083") {
		t.Errorf("without a console: %s", text)
	}
	with, text := of("console: {service: {enabled: true, hosts: [a.example, b.example], tlsSecret: mine}}")
	for _, part := range []string{`"--console-address=:8083"`, `"--console-hosts=a.example,b.example"`,
		`"--pod-address=$(POD_ADDRESS)"`, `"--console-certificate=/etc/helenus/console"`, `{"fieldPath":"status.podIP"}`,
		`{"secretName":"mine"}`, `{"containerPort":8083,"name":"console"}`, `{"port":"console","protocol":"TCP"}`} {
		if !strings.Contains(text, part) {
			t.Errorf("there is no %s in %s", part, text)
		}
	}
	if _, text := of("console: {service: {enabled: true, hosts: [a.example]}}"); strings.Contains(text, "certificate") {
		t.Errorf("without a certificate: %s", text)
	}
	for name, o := range without {
		if strings.Contains(name, "Role") && fmt.Sprint(o) != fmt.Sprint(with[name]) {
			t.Errorf("%s has other rights", name)
		}
	}
	if len(with) != len(without)+1 {
		t.Errorf("%d objects with a console, %d without", len(with), len(without))
	}
}

func TestWhatValuesChange(t *testing.T) {
	all := objects(t, "helenus-system", "{}")
	for _, of := range []struct{ values, without, with string }{
		{"crds: {install: false}", "CustomResourceDefinition//cassandraclusters.helenus.io", ""},
		{"networkPolicy: {enabled: false}", "NetworkPolicy/helenus-system/helenus", ""},
		{"metrics: {rules: {enabled: true}}", "", "PrometheusRule/helenus-system/helenus"},
		{"metrics: {podMonitor: {enabled: true}}", "", "PodMonitor/helenus-system/helenus"},
		{"metrics: {dashboards: {enabled: true}}", "", "ConfigMap/helenus-system/helenus-dashboard-tables"},
		{"console: {service: {enabled: true, hosts: [a.example]}}", "", "Service/helenus-system/helenus-console"},
		{"namespace: {create: true}", "", "Namespace//helenus-system"},
		{"watch: {namespaces: [shop, bank]}", "ClusterRole//helenus", "Role/shop/helenus-operator"},
		{"watch: {namespaces: [shop, bank]}", "ClusterRoleBinding//helenus", "RoleBinding/bank/helenus-operator"},
	} {
		got := objects(t, "helenus-system", of.values)
		if of.without != "" && (all[of.without] == nil || got[of.without] != nil) {
			t.Errorf("%s: %s is there", of.values, of.without)
		}
		if of.with != "" && (all[of.with] != nil || got[of.with] == nil) {
			t.Errorf("%s: %s is not there", of.values, of.with)
		}
	}
	for name, o := range all {
		if strings.HasPrefix(name, "CustomResourceDefinition/") {
			keep, _ := value(o, "metadata.annotations")
			if keep.(map[string]any)["helm.sh/resource-policy"] != "keep" {
				t.Errorf("Helm deletes %s", name)
			}
		}
	}
	rules := objects(t, "helenus-system", "metrics: {rules: {enabled: true, labels: {release: prom}}}")
	rule := rules["PrometheusRule/helenus-system/helenus"]
	if groups, _ := value(rule, "spec.groups"); len(groups.([]any)) != 1 {
		t.Errorf("the rules are %v", rule)
	}
	if release, _ := value(rule, "metadata.labels.release"); release != "prom" {
		t.Errorf("the rules have the label release: %v", release)
	}
	tables := objects(t, "helenus-system", "metrics: {dashboards: {enabled: true}}")["ConfigMap/helenus-system/"+
		"helenus-dashboard-tables"]
	dashboard := map[string]any{}
	if text, _ := tables["data"].(map[string]any)["tables.json"].(string); json.Unmarshal([]byte(text), &dashboard) != nil ||
		dashboard["uid"] != "helenus-tables" {
		t.Errorf("the dashboard is %v", tables)
	}
	expectConsole(t)
	narrow := objects(t, "helenus-system", "watch: {namespaces: [shop]}")
	want, _ := json.Marshal(all["ClusterRole//helenus"]["rules"])
	if got, _ := json.Marshal(narrow["Role/shop/helenus-operator"]["rules"]); string(got) != string(want) {
		t.Errorf("in one namespace it may %s, else %s", got, want)
	}
	deployment, _ := json.Marshal(objects(t, "elsewhere", `{images: {operator: {repository: r/o, digest: "sha256:`+
		strings.Repeat("a", 64)+`"}, agent: {repository: r/a, tag: v1}, cassandra: {repository: r/c},
		pullSecrets: [{name: mine}]},
		watch: {namespaces: [shop, bank]}, verbose: true, nodeSelector: {disk: ssd}}`)["Deployment/elsewhere/helenus"])
	for _, words := range []string{`"image":"r/o@sha256:aaaa`, "--agent-image=r/a:v1", "--image-repository=r/c",
		"--namespaces=shop,bank", "--verbose",
		`"imagePullSecrets":[{"name":"mine"}]`, `"nodeSelector":{"disk":"ssd"}`} {
		if !strings.Contains(string(deployment), words) {
			t.Errorf("the Deployment lacks %s: %s", words, deployment)
		}
	}
}

// The policies know the operator in whatever namespace it is.
func TestPoliciesKnowTheOperator(t *testing.T) {
	knows := func(namespace string) []string {
		var out []string
		for name, o := range objects(t, namespace, "{}") {
			text, _ := json.Marshal(o)
			if strings.Contains(string(text), "system:serviceaccount:"+namespace+":helenus") {
				out = append(out, name)
			}
			if namespace != "helenus-system" && strings.Contains(string(text), "helenus-system:helenus") {
				t.Errorf("%s knows the operator elsewhere", name)
			}
		}
		return slices.Sorted(slices.Values(out))
	}
	if here, there := knows("helenus-system"), knows("elsewhere"); len(here) < 2 || !slices.Equal(here, there) {
		t.Errorf("%q know it in helenus-system, %q elsewhere", here, there)
	}
	if objects(t, "elsewhere", "{}")["Namespace//elsewhere"] != nil {
		t.Error("the namespace of the release is made without being asked for")
	}
}
