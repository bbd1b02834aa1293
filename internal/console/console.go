package console

import (
	"embed"
	"io/fs"
	"net/http"
)

//go:embed dist
var files embed.FS

// Handler serves the page and what it loads.
func Handler() http.Handler {
	dist, err := fs.Sub(files, "dist")
	if err != nil {
		panic(err) // the name is a constant
	}
	server := http.FileServerFS(dist)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-cache") // another operator has another page
		server.ServeHTTP(w, r)
	})
}
