"""What the command asks of a Kubeflow Pipelines installation, all through `kfp.Client`.

::

    connection.py   the client: address, credentials, deadlines, errors in one line
    submission.py   what a run or a schedule is made of, checked before anything is sent
    cron.py         five fields to the six that KFP reads
    macros.py       texts that KFP fills in when a run starts
    runs.py         one run: start it, watch it, say why it failed
    run_states.py   what an answer says of each step; no network
    schedules.py    recurring runs by name
"""
