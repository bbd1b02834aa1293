// Package cassandra is the recipe of the Cassandra images: which versions there
// are, what each is made of, and how its layers are assembled. It may import
// every package beside it but own, check and cli.
package cassandra
