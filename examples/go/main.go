package main

import (
	"github.com/nodeless/pulumi-nodeless/sdk/go/nodeless"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

func main() {
	pulumi.Run(func(ctx *pulumi.Context) error {
		environment, err := nodeless.NewEnvironment(ctx, "environment", &nodeless.EnvironmentArgs{
			ClusterName:     "go",
			ZoneCount:       pulumi.IntRef(2),
			ControllerImage: pulumi.String("ghcr.io/nodeless/controller:0.1.0"),
			NodeTemplates:   []nodeless.NodeTemplateArgsArgs{{Name: "default", AmiFamily: pulumi.StringRef("Bottlerocket")}},
			Provisioners: []nodeless.ProvisionerArgsArgs{{
				Name:         "default",
				NodeTemplate: "default",
				Requirements: []nodeless.RequirementArgsArgs{{
					Key:      "karpenter.sh/capacity-type",
					Operator: "In",
					Values:   []string{"spot", "on-demand"},
				}},
				Limits:        map[string]string{"cpu": "100"},
				Consolidation: pulumi.BoolRef(true),
			}},
		})
		if err != nil {
			return err
		}
		ctx.Export("clusterName", environment.ClusterName)
		ctx.Export("kubeconfig", environment.Kubeconfig)
		return nil
	})
}
