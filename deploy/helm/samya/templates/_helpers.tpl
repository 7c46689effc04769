{{/* The chart's name in the names of objects. */}}
{{- define "samya.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 24 | trimSuffix "-" -}}
{{- end -}}

{{/*
The prefix of the names of objects: at most 24 characters, as the name of a StatefulSet,
with the name of its site, has room for 52.
*/}}
{{- define "samya.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 24 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 24 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 24 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Labels by which objects of the release find its pods: with a dict of top and component. */}}
{{- define "samya.selector" -}}
app.kubernetes.io/name: {{ include "samya.name" .top }}
app.kubernetes.io/instance: {{ .top.Release.Name }}
{{- with .component }}
app.kubernetes.io/component: {{ . }}
{{- end }}
{{- end -}}

{{/* Labels of an object: with a dict of top, component, and perhaps site and region. */}}
{{- define "samya.labels" -}}
{{ include "samya.selector" . }}
app.kubernetes.io/part-of: samya
app.kubernetes.io/managed-by: {{ .top.Release.Service }}
app.kubernetes.io/version: {{ .top.Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .top.Chart.Name .top.Chart.Version | replace "+" "_" }}
{{- include "samya.place" . }}
{{- with .top.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Labels of a pod. They name no version, so that a new chart alone restarts no pod. */}}
{{- define "samya.podLabels" -}}
{{ include "samya.selector" . }}
app.kubernetes.io/part-of: samya
{{- include "samya.place" . }}
{{- with .top.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "samya.place" -}}
{{- with .site }}
samya-db.github.io/site: {{ . }}
{{- end }}
{{- with .region }}
samya-db.github.io/region: {{ . }}
{{- end }}
{{- end -}}

{{- define "samya.image" -}}
{{- $i := .Values.image -}}
{{- if $i.digest -}}
{{ $i.repository }}@{{ $i.digest }}
{{- else if $i.tag -}}
{{ $i.repository }}:{{ $i.tag }}
{{- else if eq .Chart.AppVersion "v0.0.0" -}}
{{- fail "image.tag: this chart is of a checkout and names no release: set image.tag or image.digest" -}}
{{- else -}}
{{ $i.repository }}:{{ .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* Whether processes have certificates, an access file and gossip keys. */}}
{{- define "samya.secure" -}}
{{- if ne .Values.tls.mode "none" }}true{{ end -}}
{{- end -}}

{{- define "samya.scheme" -}}
{{- if include "samya.secure" . }}https{{ else }}http{{ end -}}
{{- end -}}

{{/* The regions with app managers, as a JSON list. */}}
{{- define "samya.regions" -}}
{{- $regions := .Values.appManager.regions -}}
{{- if not $regions -}}
{{- $regions = list -}}
{{- range .Values.sites }}{{ $regions = append $regions (default .name .region) }}{{ end -}}
{{- end -}}
{{- $regions | uniq | toJson -}}
{{- end -}}

{{/* The gossip addresses that processes begin with. */}}
{{- define "samya.seeds" -}}
{{- $top := . -}}
{{- $seeds := list -}}
{{- range .Values.sites }}{{ $seeds = append $seeds (printf "%s-%s.%s.svc:7201" (include "samya.fullname" $top) .name $top.Release.Namespace) }}{{ end -}}
{{- concat $seeds .Values.cluster.seeds | join "," -}}
{{- end -}}

{{/* The address of an app manager for commands. */}}
{{- define "samya.address" -}}
{{- if .Values.admin.address -}}
{{ .Values.admin.address }}
{{- else if .Values.appManager.enabled -}}
{{ include "samya.scheme" . }}://{{ include "samya.fullname" . }}.{{ .Release.Namespace }}.svc:8080
{{- else -}}
{{- fail "admin.address: a release without app managers needs the address of one elsewhere" -}}
{{- end -}}
{{- end -}}

{{/* The flags of a command that talks to the cluster as the administrator. */}}
{{- define "samya.adminFlags" -}}
- --addr={{ include "samya.address" . }}
{{- if include "samya.secure" . }}
- --tls-ca=/etc/samya/{{ if .Values.tls.caBundle.configMap }}ca/{{ .Values.tls.caBundle.key }}{{ else }}admin/ca.crt{{ end }}
- --tls-cert=/etc/samya/admin/tls.crt
- --tls-key=/etc/samya/admin/tls.key
{{- end }}
{{- end -}}

{{/* The flags of security of a site or an app manager. */}}
{{- define "samya.secureFlags" -}}
{{- if include "samya.secure" . }}
- --tls-cert=/etc/samya/tls/tls.crt
- --tls-key=/etc/samya/tls/tls.key
- --tls-ca=/etc/samya/{{ if .Values.tls.caBundle.configMap }}ca/{{ .Values.tls.caBundle.key }}{{ else }}tls/ca.crt{{ end }}
{{- if .Values.tls.crl.secret }}
- --tls-crl=/etc/samya/crl/{{ .Values.tls.crl.key }}
{{- end }}
- --access-file=/etc/samya/access/access.yaml
- --gossip-key-file=/etc/samya/gossip/gossip.key
{{- else }}
- --insecure
{{- end }}
{{- end -}}

{{/* Settings as flags. Lists become values with commas. */}}
{{- define "samya.settings" -}}
{{- range $name, $value := . }}
- {{ if kindIs "slice" $value }}{{ printf "--%s=%s" $name (join "," $value) | quote }}{{ else if kindIs "float64" $value }}{{ printf "--%s=%s" $name (toJson $value) | quote }}{{ else }}{{ printf "--%s=%v" $name $value | quote }}{{ end }}
{{- end }}
{{- end -}}

{{- define "samya.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "samya.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{/* What all pods have: service account, security, pull secrets. */}}
{{- define "samya.podCommon" -}}
serviceAccountName: {{ include "samya.fullname" . }}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  {{- include "samya.podSecurity" . | nindent 2 }}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* Spread over zones and machines: with a dict of top, component, region, spread. */}}
{{- define "samya.spread" -}}
{{- $at := . -}}
{{- if or .spread.zone .spread.hostname }}
topologySpreadConstraints:
  {{- range $key, $when := dict "topology.kubernetes.io/zone" .spread.zone "kubernetes.io/hostname" .spread.hostname }}
  {{- if $when }}
  - topologyKey: {{ $key }}
    maxSkew: 1
    whenUnsatisfiable: {{ $when }}
    labelSelector:
      matchLabels:
        {{- include "samya.selector" $at | nindent 8 }}
        {{- with $at.region }}
        samya-db.github.io/region: {{ . }}
        {{- end }}
  {{- end }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* Environment with the address of the pod. */}}
{{- define "samya.env" -}}
- name: POD_IP
  valueFrom: {fieldRef: {fieldPath: status.podIP}}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
{{- end -}}

{{/* Mounts of keys and certificates. */}}
{{- define "samya.secureMounts" -}}
{{- if include "samya.secure" . }}
- {name: tls, mountPath: /etc/samya/tls, readOnly: true}
- {name: access, mountPath: /etc/samya/access, readOnly: true}
- {name: gossip, mountPath: /etc/samya/gossip, readOnly: true}
{{- if .Values.tls.crl.secret }}
- {name: crl, mountPath: /etc/samya/crl, readOnly: true}
{{- end }}
{{- if .Values.tls.caBundle.configMap }}
- {name: ca, mountPath: /etc/samya/ca, readOnly: true}
{{- end }}
{{- end }}
{{- end -}}

{{/* Volumes of keys and certificates: with a dict of top and secret, the name of the Secret. */}}
{{- define "samya.secureVolumes" -}}
{{- if include "samya.secure" .top }}
- name: tls
  secret: {secretName: {{ .secret }}, defaultMode: 0440}
- name: access
  secret: {secretName: {{ include "samya.accessSecret" .top }}, defaultMode: 0440}
- name: gossip
  secret: {secretName: {{ include "samya.gossipSecret" .top }}, defaultMode: 0440}
{{- with .top.Values.tls.crl.secret }}
- name: crl
  secret: {secretName: {{ . }}, defaultMode: 0440}
{{- end }}
{{- include "samya.caVolume" .top }}
{{- end }}
{{- end -}}

{{- define "samya.caVolume" -}}
{{- with .Values.tls.caBundle.configMap }}
- name: ca
  configMap: {name: {{ . }}, defaultMode: 0444}
{{- end }}
{{- end -}}

{{/* Mounts and volumes of the administrator's certificate. */}}
{{- define "samya.adminMounts" -}}
{{- if include "samya.secure" . }}
- {name: admin, mountPath: /etc/samya/admin, readOnly: true}
{{- end }}
{{- end -}}

{{- define "samya.adminVolumes" -}}
{{- if include "samya.secure" . }}
- name: admin
  secret: {secretName: {{ include "samya.fullname" . }}-admin-tls, defaultMode: 0440}
{{- end }}
{{- end -}}

{{/* What a pod of a command has besides its containers. */}}
{{- define "samya.commandMounts" -}}
{{- include "samya.adminMounts" . }}
{{- if and (include "samya.secure" .) .Values.tls.caBundle.configMap }}
- {name: ca, mountPath: /etc/samya/ca, readOnly: true}
{{- end }}
{{- end -}}

{{- define "samya.commandVolumes" -}}
{{- include "samya.adminVolumes" . }}
{{- if include "samya.secure" . }}
{{- include "samya.caVolume" . }}
{{- end }}
{{- end -}}

{{- define "samya.accessSecret" -}}
{{- default (printf "%s-access" (include "samya.fullname" .)) .Values.access.secret -}}
{{- end -}}

{{- define "samya.gossipSecret" -}}
{{- default (printf "%s-gossip" (include "samya.fullname" .)) .Values.gossip.secret -}}
{{- end -}}

{{/* A container that runs one command as the administrator: with a dict of top, name, args, and perhaps mounts. */}}
{{- define "samya.command" -}}
- name: {{ .name }}
  image: {{ include "samya.image" .top | quote }}
  imagePullPolicy: {{ .top.Values.image.pullPolicy }}
  args:
    {{- range .args }}
    - {{ . | quote }}
    {{- end }}
    {{- include "samya.adminFlags" .top | nindent 4 }}
  env:
    {{- include "samya.env" .top | nindent 4 }}
  resources:
    requests: {cpu: 50m, memory: 64Mi}
    limits: {memory: 256Mi}
  securityContext:
    {{- include "samya.containerSecurity" .top | nindent 4 }}
  {{- with print (include "samya.commandMounts" .top) "\n" (default "" .mounts) | trim }}
  volumeMounts:
    {{- . | nindent 4 }}
  {{- end }}
{{- end -}}

{{/* Whether a site of the release is draining. */}}
{{- define "samya.draining" -}}
{{- range .Values.sites }}{{ if eq (default "member" .state) "draining" }}true{{ end }}{{ end -}}
{{- end -}}

{{- define "samya.selectorJSON" -}}
{{- include "samya.selector" . | fromYaml | toJson -}}
{{- end -}}

{{/* The peers of a NetworkPolicy that are the cluster's processes. */}}
{{- define "samya.processes" -}}
- podSelector: {matchLabels: {{ include "samya.selectorJSON" (dict "top" . "component" "site") }}}
- podSelector: {matchLabels: {{ include "samya.selectorJSON" (dict "top" . "component" "app-manager") }}}
{{- with .Values.networkPolicy.members }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The pod of the job of members: with a dict of top and commands. */}}
{{- define "samya.membersPod" -}}
metadata:
  labels:
    {{- include "samya.podLabels" (dict "top" .top "component" "command") | nindent 4 }}
spec:
  {{- include "samya.podCommon" .top | nindent 2 }}
  restartPolicy: OnFailure
  # One change of the members after the other.
  {{- with initial .commands }}
  initContainers:
    {{- range . }}
    {{- include "samya.command" . | nindent 4 }}
    {{- end }}
  {{- end }}
  containers:
    {{- include "samya.command" (last .commands) | nindent 4 }}
  {{- with include "samya.commandVolumes" .top | trim }}
  volumes:
    {{- . | nindent 4 }}
  {{- end }}
{{- end -}}

{{/* What the schema of the values cannot say. */}}
{{- define "samya.validate" -}}
{{- $names := list -}}
{{- range .Values.sites -}}
{{- if has .name $names }}{{ fail (printf "sites: %s is there twice" .name) }}{{ end -}}
{{- if eq .name (default "" .heir) }}{{ fail (printf "sites: %s cannot be its own heir" .name) }}{{ end -}}
{{- $names = append $names .name -}}
{{- end -}}
{{- if and .Values.backup.schedule (not .Values.backup.claim) }}{{ fail "backup.claim: backups need a claim to be written to" }}{{ end -}}
{{- $scaling := .Values.appManager.autoscaling -}}
{{- if gt (int $scaling.minReplicas) (int $scaling.maxReplicas) }}{{ fail "appManager.autoscaling: minReplicas is above maxReplicas" }}{{ end -}}
{{- end -}}
