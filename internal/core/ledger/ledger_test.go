package ledger

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"
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

// overwrite changes everything that can be changed through a value: what another shares with it changes too.
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
