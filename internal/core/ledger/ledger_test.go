package ledger

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"helenus.io/helenus/api/v1alpha1"
)

// fill puts something into every field, however deep.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)))
			return
		}
		if v.Type() == reflect.TypeFor[v1alpha1.NodeSettings]() { // quantities have fields that nobody may set
			v.Set(reflect.ValueOf(v1alpha1.NodeSettings{JVM: &v1alpha1.JVM{Options: []string{"-Xss1m"}}}))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key)
		fill(value)
		v.SetMapIndex(key, value)
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.SetBytes([]byte(`{"x":1}`))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	default:
		v.SetInt(1)
	}
}

// overwrite changes everything that can be changed through a value: what another shares with it
// changes too.
func overwrite(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			overwrite(v.Elem())
			v.Elem().SetZero()
		}
	case reflect.Struct:
		if v.Type() != reflect.TypeFor[time.Time]() {
			for i := range v.NumField() {
				overwrite(v.Field(i))
			}
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			overwrite(v.MapIndex(key))
		}
		v.Clear()
	case reflect.Slice:
		for i := range v.Len() {
			overwrite(v.Index(i))
			v.Index(i).SetZero()
		}
	default: // nothing is shared through a plain value
	}
}

// A copy has everything, and shares nothing with what it was made of.
func TestLedgerCopy(t *testing.T) {
	var l Ledger
	fill(reflect.ValueOf(&l).Elem())
	text, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	out := l.Copy()
	if !reflect.DeepEqual(*out, l) {
		t.Errorf("the copy is %+v, want %+v", *out, l)
	}
	overwrite(reflect.ValueOf(&l).Elem())
	if after, err := json.Marshal(out); err != nil || string(after) != string(text) {
		t.Errorf("the copy has changed with what it was made of (%v):\n%s\nbefore:\n%s", err, after, text)
	}
	if (*Ledger)(nil).Copy() != nil {
		t.Error("a copy of none")
	}
	if got := (&Ledger{Steps: 1}).Copy(); !reflect.DeepEqual(got, &Ledger{Steps: 1}) {
		t.Errorf("a copy of one without a step is %+v", got)
	}
}

// A ConfigMap holds 1 MiB. Above 300 KiB the members would move to one of their own.
func TestLedgerOfAThousandNodes(t *testing.T) {
	l := &Ledger{ClusterUID: "0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f", Ring: Ring{Members: map[string]string{}}}
	tokens := map[string][]string{}
	step := &Step{ID: "0a1b2c3d-17", Kind: AddDatacenter, Class: Topology, Stage: StageTickets}
	for i := range 1000 {
		name := fmt.Sprintf("a-cluster-of-thirty-characters-dc%d-rack%d-%d", i%3, i%9, i)
		l.Members[name] = "0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f"
		l.Cleanup = append(l.Cleanup, name)
		if i%3 == 0 {
			step.Nodes = append(step.Nodes, name)
			for range 16 {
				tokens[name] = append(tokens[name], "-9223372036854775808")
			}
		}
	}
	step.State = Encoded(map[string]any{"tokens": tokens})
	l.Step = step
	data, err := Encode(l)
	if err != nil {
		t.Fatal(err)
	}
	if size := len(data[Key]); size > 300<<10 {
		t.Errorf("%d KiB", size>>10)
	} else {
		t.Logf("%d KiB", size>>10)
	}
}

// Has searches in sorted names: a ledger that says them in another order is read as if it did.
func TestTheNodesOfAStepAreSorted(t *testing.T) {
	text := `{"clusterUID":"uid","step":{"id":"a","nodes":["c","a","b"]},"suspended":[{"id":"b","nodes":["z","y"]}]}`
	l, err := Decode(map[string]string{Key: text}, "uid")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b", "c"} {
		if !l.Step.Has(name) {
			t.Errorf("node %s is not found", name)
		}
	}
	if !l.Suspended[0].Has("y") || l.Step.Has("z") {
		t.Error("the nodes of a suspended step are not found, or those of another are")
	}
}
