class ConfigurationPathError(Exception):
    pass


class IKError(Exception):
    pass
