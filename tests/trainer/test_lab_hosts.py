"""Ranks on guests of a lab: the way to the launcher that their SSH brings along."""

from fabric.lab.starter import lab_yaml
from fabric.site import load_site
from trainer.hosts import meeting_for, places_on


def test_guests_without_a_way_out_meet_where_their_ssh_leads(tmp_path):
    file = tmp_path / "fabric.yaml"
    file.write_text(lab_yaml(2, ports=(22201, 22202, 22203)))
    site = load_site(file)
    meeting = meeting_for(site, site.topology.hosts)
    places = places_on(site, site.topology.hosts, 2)
    assert meeting.host == "127.0.0.1"
    assert meeting.port > 0
    for place, port in zip(places, ("22202", "22203"), strict=True):
        words = place.command
        there = f"127.0.0.1:{meeting.port}"
        assert words[words.index("-R") + 1] == f"{there}:{there}"
        assert words[words.index("-p") + 1] == port
        # ssh keeps the first value of an option: a busy guest is not given up at once.
        options = [words[i + 1] for i, word in enumerate(words) if word == "-o"]
        alive = [option for option in options if option.startswith("ServerAliveInterval=")]
        assert alive[0] == "ServerAliveInterval=10"
        assert place.network.device == "rxe0"
