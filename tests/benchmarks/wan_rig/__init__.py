"""Wide-area links on one machine, and trainings compared over them.

What a trial is made of, from the network up::

    links.py          who is connected at which rate, and when rates change
    namespaces.py     named network namespaces; guardian.py removes them, whatever happens
    shaping.py        a token bucket for each pair of endpoints and direction
    loss.py           packets dropped by chance
    delay.py          packets held on a TUN device
    network.py        all of these together
    counters.py       bytes that crossed the links
    processes.py      a trial's processes, each at its endpoint
    systems/          what is compared: which processes run where
    mnist.py cnn.py   the data and the model that all systems share
    worker.py         one worker of a system; worker_job.py is what it is given
    gluon_learner.py  what it trains with; gluon_cnn.py is the model there
    torch_learner.py  the same with torch; torch_cnn.py
    slow_site.py      workers that are slower than others
    records.py        weights and clocks that workers leave behind
    judge.py          accuracy of these weights; evaluator.py is its process
    curve.py          accuracy over time
    trial.py          one training of one system
    comparison.py     all trainings, the best learning rate of each system, speed-ups
    results.py        JSON, table, plot
    command_line.py   options

One wire joins each endpoint (the root and the sites) to a hub::

    root: wan0 -- e0 :hub: e1 -- wan0 :site-0
                       e2 -- wan0 :site-1

Rates are limited where packets leave an endpoint, so that a slow pair of endpoints does not slow another;
loss and delay happen in the hub.

Errors::

    InputError          an option, a file or the machine's rights are not what is needed
    RuntimeError
    └── RigError        the network could not be built or a process could not be started
        └── TrialFailed a process of a training ended badly, or in silence
"""
