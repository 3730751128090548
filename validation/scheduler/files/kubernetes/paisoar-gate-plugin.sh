#!/bin/sh
# A plugin of node-problem-detector's custom plugin monitor: is this node's fabric
# certified now? Exit 0: yes (condition False), 1: no (condition True), 2: unknown.
# One short line on stdout becomes the condition's message.
# https://github.com/kubernetes/node-problem-detector/blob/master/docs/custom_plugin_monitor.md
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH

paisoar='@PAISOAR@'
site='@SITE@'
max_age='2m'

# NODE_NAME comes from the pod's downward API (fieldPath: spec.nodeName).
node=${NODE_NAME:-$(hostname)}
answer=$("$paisoar" gate -f "$site" --max-age "$max_age" --hosts "$node" 2>&1)
code=$?
printf '%s\n' "$answer" | head -n 1 | cut -c 1-200
case $code in
    0 | 1) exit "$code" ;;
    *) exit 2 ;;
esac
