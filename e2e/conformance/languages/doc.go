// Package languages tests clients for other languages: JavaScript, Python, Ruby and curl. It has only tests.
package languages
