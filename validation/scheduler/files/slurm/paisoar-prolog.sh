#!/bin/sh
# Asks PAISoar's gate before a job starts: PrologSlurmctld (the whole job), or
# Prolog on the nodes (each node by itself; a refusal drains it). slurm.conf:
#
#     PrologSlurmctld=/etc/slurm/paisoar-prolog.sh
#
# Exit 0 lets the job start. Anything else does not: 1 the gate is shut, 2 it was
# asked wrongly, 3 a device did not answer. The answer goes to stderr and syslog.
# Slurm gives a prolog no PATH: https://slurm.schedmd.com/prolog_epilog.html
PATH=/usr/sbin:/usr/bin:/sbin:/bin
export PATH

paisoar='@PAISOAR@'
site='@SITE@'
max_age='2m'
# Partitions whose jobs need the fabric, between spaces; all of them where empty.
partitions=''

if [ -n "$partitions" ]; then
    case " $partitions " in
        *" ${SLURM_JOB_PARTITION:-} "*) ;;
        *) exit 0 ;;
    esac
fi

# The controller says which nodes a job has; a node's daemon only which one it is.
hosts=${SLURM_JOB_NODELIST:-${SLURMD_NODENAME:-}}
if [ -z "$hosts" ]; then
    echo "paisoar gate: neither SLURM_JOB_NODELIST nor SLURMD_NODENAME is set" >&2
    exit 2
fi

answer=$("$paisoar" gate -f "$site" --max-age "$max_age" --hosts "$hosts" 2>&1)
code=$?
if [ "$code" -ne 0 ]; then
    text="paisoar gate: job ${SLURM_JOB_ID:-unknown}: $answer"
    echo "$text" >&2
    logger -t paisoar-gate -p daemon.warning -- "$text" 2>/dev/null || :
fi
exit "$code"
