// Package after is the suite of package before, with the typed test server instead of envtest.
package after
