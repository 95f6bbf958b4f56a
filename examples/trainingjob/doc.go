// Trainingjob runs a controller of TrainingJobs, a custom resource. A TrainingJob is distributed training with a chief,
// workers and parameter servers, like a TFJob. See README.md.
package main
