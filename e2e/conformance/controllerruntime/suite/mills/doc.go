// Package mills is an API with webhooks, as a project of kubebuilder has it: two versions of a kind with their
// conversions, defaults and validation. It also has the parts of the project's suite that do not use envtest.
package mills
