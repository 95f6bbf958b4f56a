// Package before is a suite that uses envtest of controller-runtime. Package after is the same suite with another
// import.
package before
