// Quickstart has one function for each layer of leat. docs/quickstart.md shows them.
package main
