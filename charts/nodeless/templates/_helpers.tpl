{{- /* Name of the Deployment, the Service and the roles; Karpenter's, whose names people know. */ -}}
{{- define "nodeless.fullname" -}}
{{- include "nodeless.ownImage" . -}}
{{ .Values.fullnameOverride | default "karpenter" | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "nodeless.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{ .Values.serviceAccount.name | default (include "nodeless.fullname" .) }}
{{- else -}}
{{ .Values.serviceAccount.name | default "default" }}
{{- end }}
{{- end }}

{{- /* The labels that select the controller's pods. They can't change once the Deployment exists. */ -}}
{{- define "nodeless.selectorLabels" -}}
app.kubernetes.io/name: {{ .Values.nameOverride | default "karpenter" }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "nodeless.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "_") }}
{{ include "nodeless.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.additionalLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* The annotations of an object: (dict "root" $ "own" (dict ...)) */ -}}
{{- define "nodeless.annotations" -}}
{{- with merge (dict) (.own | default dict) (.root.Values.additionalAnnotations | default dict) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* A release of Karpenter's that becomes ours brings its values; all of them are good but the image. */ -}}
{{- define "nodeless.ownImage" -}}
{{- if hasSuffix "karpenter/controller" .Values.controller.image.repository -}}
{{- fail "controller.image.repository is Karpenter's controller; hint: set controller.image to nodeless' image, and upgrade with --reset-then-reuse-values, as --reuse-values takes the defaults of Karpenter's chart" -}}
{{- end -}}
{{- end }}

{{- define "nodeless.image" -}}
{{- with .Values.controller.image -}}
{{ .repository }}{{ if or .tag (not .digest) }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}{{ with .digest }}@{{ . }}{{ end }}
{{- end }}
{{- end }}

{{- define "nodeless.clusterName" -}}
{{ tpl (.Values.settings.clusterName | default (.Values.settings.aws | default dict).clusterName | default "") . }}
{{- end }}

{{- /* The ARN of the service account's role, where it has one by IRSA. */ -}}
{{- define "nodeless.roleARN" -}}
{{ get (.Values.serviceAccount.annotations | default dict) "eks.amazonaws.com/role-arn" }}
{{- end }}

{{- /*
The data of karpenter-global-settings: every value a string. Empty ones are left to the controller's defaults.
Strings may be templates, as in Karpenter's chart: those of a parent chart name its global values.
*/ -}}
{{- define "nodeless.settings" -}}
{{- include "nodeless.ownImage" . -}}
{{- $settings := .Values.settings }}
{{- $aws := $settings.aws | default dict }}
{{- $gates := $settings.featureGates | default dict }}
{{- $data := dict
  "aws.clusterName" (include "nodeless.clusterName" .)
  "aws.clusterEndpoint" ($settings.clusterEndpoint | default $aws.clusterEndpoint)
  "aws.defaultInstanceProfile" $aws.defaultInstanceProfile
  "aws.enableENILimitedPodDensity" $aws.enableENILimitedPodDensity
  "aws.enablePodENI" $aws.enablePodENI
  "aws.interruptionQueueName" ($settings.interruptionQueue | default $aws.interruptionQueueName)
  "aws.isolatedVPC" (or $settings.isolatedVPC $aws.isolatedVPC | default false)
  "aws.nodeNameConvention" $aws.nodeNameConvention
  "aws.vmMemoryOverheadPercent" ($aws.vmMemoryOverheadPercent | default $settings.vmMemoryOverheadPercent)
  "batchIdleDuration" $settings.batchIdleDuration
  "batchMaxDuration" $settings.batchMaxDuration
  "featureGates.driftEnabled" (or $gates.drift $gates.driftEnabled | default false)
  "nodeless.amiRefreshInterval" $settings.amiRefreshInterval
  "nodeless.capacityBuffers" $gates.capacityBuffer
  "nodeless.clusterCABundle" ($settings.clusterCABundle | default $aws.clusterCABundle)
  "nodeless.disableDryRun" $settings.disableDryRun
  "nodeless.eksControlPlane" $settings.eksControlPlane
  "nodeless.minValuesPolicy" $settings.minValuesPolicy
  "nodeless.nodeOverlays" $gates.nodeOverlay
  "nodeless.nodeRepair" $gates.nodeRepair
  "nodeless.preferencePolicy" $settings.preferencePolicy
  "nodeless.provisioningRequests" $gates.provisioningRequest
  "nodeless.reservedENIs" $settings.reservedENIs
  "nodeless.spotToSpotConsolidation" $gates.spotToSpotConsolidation
  "nodeless.subnetRefreshInterval" $settings.subnetRefreshInterval
  "nodeless.terminateFirstDrift" $gates.terminateFirstDrift
  "nodeless.terminateFirstRepair" $gates.terminateFirstRepair
  "nodeless.zonalShift" $settings.enableZonalShift
}}
{{- with $aws.tags }}
{{- $_ := set $data "aws.tags" (toJson .) }}
{{- end }}
{{- range $key, $value := $settings.nodeless }}
{{- $_ := set $data (printf "nodeless.%s" $key) $value }}
{{- end }}
{{- range $key := keys $data | sortAlpha }}
{{- $value := get $data $key }}
{{- if not (or (eq (toString $value) "") (kindIs "invalid" $value)) }}
{{ $key }}: {{ if kindIs "string" $value }}{{ tpl $value $ | quote }}{{ else if or (kindIs "map" $value) (kindIs "slice" $value) }}{{ toJson $value | quote }}{{ else }}{{ toString $value | quote }}{{ end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "nodeless.rules" -}}
{{ .root.Files.Get "files/rules.json" | replace "CERTIFICATE" (printf "%s-cert" (include "nodeless.fullname" .root)) | fromJson | dig .name list | toYaml }}
{{- end }}

{{- /* A list of affinity terms or spread constraints, in which those without a selector of pods get the controller's own. */ -}}
{{- define "nodeless.withSelector" -}}
{{- $selector := dict "matchLabels" (include "nodeless.selectorLabels" .root | fromYaml) }}
{{- range .terms }}
{{- $term := deepCopy . }}
{{- if hasKey $term "podAffinityTerm" }}
{{- if not $term.podAffinityTerm.labelSelector }}{{ $_ := set $term.podAffinityTerm "labelSelector" $selector }}{{ end }}
{{- else if not $term.labelSelector }}{{ $_ := set $term "labelSelector" $selector }}{{ end }}
- {{ toYaml $term | nindent 2 | trim }}
{{- end }}
{{- end }}

{{- define "nodeless.affinity" -}}
{{- with .Values.affinity.nodeAffinity }}
nodeAffinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- range $kind := list "podAffinity" "podAntiAffinity" }}
{{- with get $.Values.affinity $kind }}
{{ $kind }}:
  {{- range $strength, $terms := . }}
  {{ $strength }}:
    {{- include "nodeless.withSelector" (dict "root" $ "terms" $terms) | nindent 4 }}
  {{- end }}
{{- end }}
{{- end }}
{{- end }}
