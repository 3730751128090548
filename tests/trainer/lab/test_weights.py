"""GreenNet on two guests: verbs bring the same weights as TCP, to the bit."""

from tests.trainer.lab.guests import ROOT, need_guests, site
from trainer.collective.settings import NetworkSettings
from trainer.hosts import meeting_for, places_on
from trainer.launch import NOT_NEEDED
from trainer.orders import JobOrders
from trainer.spec import TrainingPlan
from trainer.supervise import run_ranks

pytestmark = need_guests

HOSTS = ("host1", "host2")
STEPS = 4


def payload(steps):
    plan = TrainingPlan(
        model="greennet",
        data="synthetic",
        image_size=16,
        classes=10,
        steps=steps,
        batch_size=4,
        bucket_bytes=1 << 16,
    )
    return JobOrders(plan, None, False, 1, None).payload()


def test_verbs_bring_the_same_weights_as_tcp():
    lab = site()
    # Guests of a lab that has not been provisioned carry no more.
    mtu = NetworkSettings().mtu
    outcome = run_ranks(
        "tests.trainer.lab.weights:by_each",
        payload(STEPS),
        ranks=2,
        transport="tcp",
        patience_s=900,
        path=(ROOT,),
        hidden=NOT_NEEDED,
        places=places_on(lab, HOSTS, 2, wishes=(f"mtu={mtu}",)),
        meeting=meeting_for(lab, HOSTS),
    )
    by_tcp, by_verbs = zip(*outcome.results, strict=True)
    assert {found["transport"] for found in by_tcp} == {"tcp"}
    assert {found["transport"] for found in by_verbs} == {"verbs"}
    digests = {found["digest"] for found in (*by_tcp, *by_verbs)}
    assert len(digests) == 1, outcome.results
    assert by_verbs[0]["loss"] == by_tcp[0]["loss"]
