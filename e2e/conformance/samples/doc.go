// Package samples holds one valid object of each built-in resource.
package samples
