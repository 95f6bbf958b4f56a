// Trainingjob runs a controller of TrainingJobs, which are kept in a CustomResourceDefinition: distributed training with a
// chief, workers and parameter servers, as a TFJob has it. See README.md.
package main
