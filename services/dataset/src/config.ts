/** What the dataset service is configured with: nothing beside what all services share. */

export { type BaseConfig as DatasetConfig, readBaseConfig as readDatasetConfig } from "@hone/service-kit";
