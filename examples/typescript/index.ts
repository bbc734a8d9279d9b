import * as aws from "@pulumi/aws";
import * as nodeless from "@nodeless/nodeless";

const provider = new aws.Provider("aws", { region: "us-east-1" });

const environment = new nodeless.Environment("environment", {
    clusterName: "typescript",
    zoneCount: 3,
    natGateways: "per-zone",
    // Afterwards, close it: docs/guides/private-cluster.md says how.
    endpointPublicAccess: true,
    controllerImage: "ghcr.io/nodeless/controller:0.1.0",
    nodeTemplates: [{ name: "default", amiFamily: "Bottlerocket" }],
    provisioners: [{
        name: "default",
        nodeTemplate: "default",
        requirements: [{ key: "kubernetes.io/arch", operator: "In", values: ["amd64", "arm64"] }],
        limits: { cpu: "100" },
        consolidation: true,
    }],
}, { providers: [provider] });

export const clusterName = environment.clusterName;
export const kubeconfig = environment.kubeconfig;
