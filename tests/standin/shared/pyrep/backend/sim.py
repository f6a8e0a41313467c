sim_boolparam_realtime_simulation = 25
asked = []


def simSetBoolParameter(parameter, value):
    asked.append((parameter, value))
