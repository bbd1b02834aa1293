// Package chart renders the Helm chart of Helenus as Helm does. It imports Helm's library, which is
// why it is apart from the product.
package chart
