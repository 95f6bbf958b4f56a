// Webhooks serves the defaults, the validation and the conversion of TrainingJobs, a custom resource with two versions.
// See README.md.
package main
