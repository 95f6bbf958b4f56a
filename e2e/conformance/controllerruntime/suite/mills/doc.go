// Package mills is an API with webhooks, as a project of kubebuilder has it: two versions of a kind with their
// conversions, defaults and validation.
package mills
