// Command mutants measures the tests of the core: gremlins changes one operator at a time, and each
// change must make a test fail. It holds the result against the list of survivors that are allowed,
// each with its reason. It imports nothing of the product.
package main
