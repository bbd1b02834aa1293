package lock

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
)

const (
	hashA = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	hashB = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

func TestParseRefuses(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"not JSON":      {"{", "unexpected EOF"},
		"unknown field": {`{"image":"a","architecture":"amd64","mavne":[]}`, "mavne"},
		"no image":      {`{"architecture":"amd64"}`, "image and architecture"},
		"short hash": {`{"image":"a","architecture":"amd64","maven":[{"name":"g:a:1","sha256":"abc"}]}`,
			"64 hexadecimal digits"},
		"no hash": {`{"image":"a","architecture":"amd64","python":[{"name":"a","version":"1"}]}`,
			"64 hexadecimal digits"},
		"no version": {`{"image":"a","architecture":"amd64","python":[{"name":"a","sha256":"` + hashA + `"}]}`,
			"name and version"},
		"bad artifact": {`{"image":"a","architecture":"amd64","maven":[{"name":"g:a","sha256":"` + hashA + `"}]}`,
			"want group:artifact:version"},
		"two versions": {`{"image":"a","architecture":"amd64","maven":[{"name":"g:a:1","sha256":"` + hashA + `"},
			{"name":"g:a:2","sha256":"` + hashB + `"}]}`, "listed twice"},
		"no suite": {`{"image":"a","architecture":"amd64","debian":{"packages":[]}}`, "suite must be set"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got error %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestFormatDoesNotDependOnOrder(t *testing.T) {
	file := &File{
		Image: "a", Architecture: "amd64",
		Maven:  []Artifact{{Name: "g:b:1", SHA256: hashB}, {Name: "g:a:1:linux", SHA256: hashA}},
		Debian: &Suite{Name: "bookworm", Packages: []Package{{"z", "1", hashA}, {"a", "2", hashB}}},
		Python: []Wheel{{"y", "1", hashA}, {"x", "1", hashB}},
	}
	first, err := file.Format()
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := Parse(first)
	if err != nil {
		t.Fatal(err)
	}
	second, err := parsed.Format()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second) {
		t.Errorf("formatting what was parsed gives other text:\n%s\n%s", first, second)
	}
	if got := []string{parsed.Maven[0].Name, parsed.Debian.Packages[0].Name,
		parsed.Python[0].Name}; !reflect.DeepEqual(got, []string{"g:a:1:linux", "a", "x"}) {
		t.Errorf("lists are not sorted: first elements %q", got)
	}
	if file.Maven[0].Name != "g:b:1" {
		t.Error("Format changed the lock file it was called on")
	}
}

func TestCoordinates(t *testing.T) {
	for name, file := range map[string]string{
		"org.x:lib:1.2":              "lib-1.2.jar",
		"org.x:lib:1.2:linux-x86_64": "lib-1.2-linux-x86_64.jar",
	} {
		c, err := Artifact{Name: name}.Coordinates()
		if err != nil {
			t.Fatal(err)
		}
		if c.String() != name || c.FileName() != file {
			t.Errorf("%s became %s, file %s; want file %s", name, c, c.FileName(), file)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"image":"a","architecture":"amd64","maven":[{"name":"g:a:1","sha256":"` + hashA + `"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse(data)
		if err != nil {
			return
		}
		if _, err := file.Format(); err != nil {
			t.Errorf("a lock file that was read cannot be written: %v", err)
		}
	})
}
